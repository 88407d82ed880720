def model(:
    pass
