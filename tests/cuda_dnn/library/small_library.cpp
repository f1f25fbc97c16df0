// A shared library for the tests of finding NVIDIA's libraries.
extern "C" int headroom_small_library() { return 1; }
