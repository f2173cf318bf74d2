"""The examples run as they stand, without a network or a key, and print what a reader will see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

PRINTED = {
    "what_it_is": """\
[cms_createPage]
  'add a hero section to it' is page-123, "About Us" (95%: the only thing in mind)
[cms_createPage]
  'now the other one' is page-123, "About Us" (80%: what is not "Contact")
[cms_searchImages]
  'take the second image' is img-2, "team-2.jpg" (80%: "the second image" in the last list)
[cms_updatePage]
  'open the about page' is page-123, "Our Team" (85%: "about" is in its name)
[cms_deletePage]
  'rename it' is page-123, "Our Team" (55%: "Contact" was just deleted, and this is the only other page)
  'restore the deleted page' is page-124, "Contact" (80%: the page that was deleted last)
cms_updatePage: look again
  pageId: page-213 was never seen; perhaps page-123 (page "Our Team") or page-124 (page "Contact") was meant
  imageId: img-2 is in mind
<memory layer="entities">
[WORKING MEMORY]
pages:
  - "Our Team" (page-123)
  - "Contact" (page-124) [deleted]
images:
  - "team-1.jpg" (img-1)
    also listed: team-4.jpg img-4, team-5.jpg img-5
  - "team-2.jpg" (img-2)
  - "team-3.jpg" (img-3)
</memory>
""",
    "borrowed_history": """\
Where is order 118?
  call 1: 272 tokens, 0 of them as before
  call 2: 324 tokens, 212 of them as before
  It is packed.
What is in it?
  call 3: 340 tokens, 264 of them as before
  It holds tea and two mugs.
The user wants that answer again.
  call 4: 340 tokens, 280 of them as before
  Tea, two mugs.
6 messages in the conversation, 7 in the journal
Served from cache: 59%
""",
    "long_run": """\
Call 8: the window was full. 4 of 7 outputs are sent.
<compacted_history>
Archived: 6 messages of 2,076 tokens. All of it is in archive/001-outputs-of-read-file.md from_line 5 to_line 270.
In short:
Done: read_file ×3
Ids in them: forms.py, users.py, urls.py
</compacted_history>
memory_read:
  # outputs of read_file
  80: the last line of urls.py
  80: the last line of users.py
  80: the last line of forms.py
Call 9: the window was full. 2 of 8 outputs are sent.
<compacted_history>
Archived: 6 messages of 2,097 tokens, 12 in all. All of it is in \
archive/002-outputs-of-read-file.md from_line 5 to_line 270, archive/001-outputs-of-read-file.md.
In short:
Done: read_file ×3
Ids in them: settings.py, session.py, views.py
</compacted_history>
users.py makes a slug of the name before it looks for the user.
Taken back in a larger window: 8 of 8 outputs are sent.
""",
    "own_layer": """\
<memory layer="failures">
- Error: host web-6 is out of disk space, build 118 not copied.
- Error: host web-5 is out of disk space, build 118 not copied.
[older failures are in the conversation]
</memory>
cut: failures: 4 lines
  104  guide               included
   15  memory:house rules  included
   32  memory:overview     included
   55  memory:failures     cut
  218  history             included
   60  context_meta        included
""",
    "deep_memory": """\
Consolidated: 0 merged, 1 superseded, 0 expired
How did we solve CORS?
  2026-03-10, user: Since the upgrade browsers refuse every call: it is CORS again.
  2026-03-10, assistant: Fixed by allowing the shop's new origin on the gateway.
When is the deadline for the API?
  2026-03-17, fact: The deadline for the API moved to April 2.
  2026-03-10, fact, until 2026-03-17: The deadline for the API is March 20.
The same, as of March 11
  2026-03-10, fact: The deadline for the API is March 20.
What Mei likes
  2026-03-17, preference: Mei wants to be called, and never mailed, when the gateway is down.
Said in March about the gateway
  2026-03-10, assistant: Fixed by allowing the shop's new origin on the gateway.
""",
    "dreams": """\
The first dream takes in 2 and changes:
  +- Mei prefers to be called, and never mailed.
  +- The deadline for the API is March 20.
A week later takes in 1 and changes:
  -- The deadline for the API is March 20.
  +- The deadline for the API moved to April 2.
After fifty notes more it has at most 6,000 characters: True. Of Mei it says:
  - Mei is on leave in August.
  - Mei prefers to be called, and never mailed.
It says of what has faded:
  - Past: The deadline for the API moved to April 2.; Host Amsel stands in rack 0 by now, since fan…
and how to find it: `April API Amsel stands`. These words find:
  The deadline for the API moved to April 2.
After another dream, and its undo, the page is as before: True
""",
    "task_scratchpad": """\
Deploy v2 of the shop.
  memory: Updated: current_goal, completed_steps, blockers.
  memory: Updated: completed_steps. Left as they were, since an empty value beside others is taken for padding: \
blockers. To empty a field, send it alone, or name it in delete as well.
  I have asked Mei, and wait for her approval.
Try it on staging.
  memory: Updated: completed_steps.
  Staging runs v2.
Mei says yes.
  memory: Error: Nothing was changed. completed_steps does not fit the schema: Input should be a valid array
  memory: Updated: blockers.
  memory: Updated: completed_steps.
  Then production is next.
The helper comes home: completed_steps joined, 0 conflicts
{
  "current_goal": "Deploy v2",
  "completed_steps": [
    "write tests",
    "ask Mei",
    "approved",
    "v2 runs on staging"
  ],
  "blockers": []
}
""",
}


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.spec("C2", "C5", "C6", "C8", "D1", "D4", "D8", "E3", "E5", "E9", "G3", "G8", "H3", "H5", "H7")
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_always_did(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (PRINTED[name], "", 0)
    assert list(tmp_path.iterdir()) == []
