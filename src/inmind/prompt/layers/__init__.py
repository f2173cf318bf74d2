"""What a prompt can contain: one layer for each kind of memory."""
