"""Applications on top of `inmind.memory`: parse the input, make one call, present the result."""
