"""Search for the best model that a board can hold: precision per layer, fewer channels, other weights.

workbench  what a choice costs and how well it does its task
shrink     which channels are needed least, and weights that make up for them
thin       weights that are left out in fours, where kernels can leave them out too
refine     steps that may help the accuracy: rounding that makes up for itself, corrected biases
retrain    a graph as an nn.Module, for the train() of a model file
plan       how much each choice harms, and from that the choices that a search begins with
order      which of two candidates is better
study      the search, by any number of processes
tune       all of it, up to the files
"""
