"""Child sessions: what they inherit, and how their changes are merged back."""
