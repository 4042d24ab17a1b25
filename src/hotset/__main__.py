"""`python -m hotset` is `hotset`."""

from hotset.surfaces.cli import main

if __name__ == "__main__":
    main()
