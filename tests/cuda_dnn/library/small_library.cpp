// A shared library to be opened by the tests of how NVIDIA's are found.
extern "C" int headroom_small_library() { return 1; }
