"""Hardware designs as functions over the algebra of bit vectors."""
