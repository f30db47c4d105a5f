"""What one capture says: facts about its connections, and a metric in each file of measures."""
