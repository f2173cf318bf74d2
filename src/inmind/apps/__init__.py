"""Applications on top of `inmind.memory`: parse input, make one call, present the result."""
