#include <headroom/headroom.h>

#include <cstdio>

int main() { return std::printf("headroom %s\n", headroom::version()) > 0 ? 0 : 1; }
