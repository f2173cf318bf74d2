"""Run dreams in the background: acquire the lease, gather, call the model, commit."""
