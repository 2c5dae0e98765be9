"""The commands bmnet-compile, -calibrate, -run, -tool and -opt; each a thin shell over a function of the library."""
