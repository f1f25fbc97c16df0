"""Where the tests' data is, as data_files.h says it: DATA lies in the tree, SHARED beside the repository, where a machine has it."""
import pathlib

DATA = pathlib.Path(__file__).resolve().parent
SHARED = DATA.parents[2] / "shared"
