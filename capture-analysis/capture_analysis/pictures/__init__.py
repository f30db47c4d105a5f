"""Pictures as plain descriptions, and what draws them."""
