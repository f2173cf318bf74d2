"""Benchmarks: inmind's numbers, each measured in the same run as the number it is compared with."""
