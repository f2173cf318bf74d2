"""What happens while nobody is waiting: MEMORY.md is brought up to what was lived through since.

    new state = f(old state, notes, new crystals, insights, affect, curiosity, skills, economics)

Everything here is a pure function of what was gathered, so that a dream can be repeated, checked and shown; whoever
carries it out reads, asks, decides and commits in `dreamer`.
"""
