"""What is known of values: types, ends, public keys. What expressions make of them is asked of whoever knows them."""
