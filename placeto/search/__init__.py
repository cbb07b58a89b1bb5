"""Search: the best placement so far, moves, chains that exchange what they find, repair."""
