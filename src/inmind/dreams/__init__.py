"""The rules of dreaming: bring MEMORY.md up to date with the activity since the last dream.

    new state = f(old state, notes, new crystals, insights, affect, curiosity, skills, economics)

Everything here is a pure function of the gathered input, so a dream can be repeated, checked and explained. Reading,
calling the model and committing is in `jobs/dreaming.py`.
"""
