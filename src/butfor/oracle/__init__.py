"""What does the model say after these edits? The interface, the general oracle, and fast ones."""
