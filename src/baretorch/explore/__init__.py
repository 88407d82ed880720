"""What drives the compiler to answer a question: would it fit, what would help, how well does it do its task."""
