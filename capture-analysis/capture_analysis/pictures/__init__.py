"""Pictures as plain descriptions, and the code that draws them."""
