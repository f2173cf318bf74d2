"""How far apart two spellings are: the slips of a hand, counted."""

from __future__ import annotations


def slips(one: str, other: str, *, most: int) -> int:
    """Letters that were added, left out, mistaken, or swapped with their neighbour; more than `most` is `most` + 1.

    Each pair of places is looked at in a band of that width only, so long texts cost no more than their length.
    """
    if one == other:
        return 0
    if abs(len(one) - len(other)) > most:
        return most + 1
    far = most + 1
    before: dict[int, int] = {}
    above = {column: column for column in range(min(len(other), most) + 1)}
    for row, letter in enumerate(one, start=1):
        here: dict[int, int] = {}
        for column in range(max(0, row - most), min(len(other), row + most) + 1):
            if column == 0:
                here[0] = row
                continue
            changed = above.get(column - 1, far) + (letter != other[column - 1])
            best = min(changed, above.get(column, far) + 1, here.get(column - 1, far) + 1)
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == other[column - 1]:
                best = min(best, before.get(column - 2, far) + 1)
            here[column] = best
        if min(here.values(), default=far) > most:
            return far
        before, above = above, here
    return min(above.get(len(other), far), far)
