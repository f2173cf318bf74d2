"""Child sessions: inheritance, and merging their changes back."""
