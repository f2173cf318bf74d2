"""Memory in third-party clients and frameworks."""
