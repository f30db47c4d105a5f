"""What the stages tell each other, in files, and the words that all of them share."""
