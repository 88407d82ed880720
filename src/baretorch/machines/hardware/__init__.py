"""Talk to real boards: flash an image, and exchange frames over a serial port."""
