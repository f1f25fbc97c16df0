#include "cli/output_file.h"

#include <fstream>

#include "base/error.h"

namespace headroom {

void write_output(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error(ErrorKind::run, fmt::format("cannot write {}", path), "check the folder and the free space");
}

}  // namespace headroom
