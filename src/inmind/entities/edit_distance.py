"""Edit distance between two spellings, bounded."""

from __future__ import annotations


def edit_distance(first: str, second: str, *, max_distance: int) -> int:
    """Return the number of edits between two texts, or `max_distance` + 1 if there are more.

    An edit inserts, deletes or replaces a character or swaps two neighbours. Only a diagonal band of width
    `max_distance` is computed, so the cost is linear in the length of the texts.
    """
    if first == second:
        return 0
    if abs(len(first) - len(second)) > max_distance:
        return max_distance + 1
    too_far = max_distance + 1
    two_rows_up: dict[int, int] = {}
    previous_row = {column: column for column in range(min(len(second), max_distance) + 1)}
    for row, char in enumerate(first, start=1):
        current_row: dict[int, int] = {}
        for column in range(max(0, row - max_distance), min(len(second), row + max_distance) + 1):
            if column == 0:
                current_row[0] = row
                continue
            changed = previous_row.get(column - 1, too_far) + (char != second[column - 1])
            best = min(changed, previous_row.get(column, too_far) + 1, current_row.get(column - 1, too_far) + 1)
            if row > 1 and column > 1 and char == second[column - 2] and first[row - 2] == second[column - 1]:
                best = min(best, two_rows_up.get(column - 2, too_far) + 1)
            current_row[column] = best
        if min(current_row.values(), default=too_far) > max_distance:
            return too_far
        two_rows_up, previous_row = previous_row, current_row
    return min(previous_row.get(len(second), too_far), too_far)
