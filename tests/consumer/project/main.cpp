// What a program of its own needs of the installed package: the version, a call into the engine, and its error.
#include <headroom/headroom.h>

#include <cstdio>

int main() {
  std::printf("headroom %s\n", headroom::version());
  try {
    headroom::api::Session("absent", {{"memory", "1GiB"}}).plan();
  } catch (const headroom::api::Error& error) {
    return error.kind() == headroom::api::ErrorKind::usage && !error.remedy().empty() ? 0 : 1;
  }
  return 1;
}
