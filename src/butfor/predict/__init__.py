"""The user's model: how it is called, how far it sees, and that it is left as it was found."""
