"""What the model is sent: layers in budget, an anchored prefix, the history, and a tail that carries what changed."""
