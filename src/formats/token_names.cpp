#include "formats/token_names.h"

#include <array>
#include <string_view>

#include "formats/json_members.h"

namespace headroom {

Json read_token_names(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 8> members = {"bos_token", "eos_token", "unk_token",  "sep_token",
                                                       "pad_token", "cls_token", "mask_token", "chat_template"};
  return read_json_members(path, members, int64_t{16} << 20);
}

}  // namespace headroom
