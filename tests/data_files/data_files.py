"""The tests' data, as in data_files.h: DATA is in the repository, SHARED next to it on machines that have it."""
import pathlib

DATA = pathlib.Path(__file__).resolve().parent
SHARED = DATA.parents[2] / "shared"
