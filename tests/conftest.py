"""How hard hypothesis looks, depending on who is waiting.

CI repeats itself, so a red build is the change's fault and not the dice's; at a desk every run looks somewhere new;
torture looks long. No profile has a deadline: a slow machine is not a failing test.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_UNHURRIED = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("ci", parent=_UNHURRIED, derandomize=True)
settings.register_profile("desk", parent=_UNHURRIED)
settings.register_profile("torture", parent=_UNHURRIED, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "desk"))
