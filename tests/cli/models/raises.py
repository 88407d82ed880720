def model():
    weights = {}
    return weights["trained"]


def inputs():
    return ()
