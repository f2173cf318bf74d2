"""The numbers inmind is held to, measured beside what they are compared with, in one run."""
