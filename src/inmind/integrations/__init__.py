"""Memory inside the clients and frameworks of others."""
