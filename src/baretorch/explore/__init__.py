"""Drive the compiler to answer questions: which boards hold a model, what would help, how accurate is it."""
