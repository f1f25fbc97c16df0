#include "doctor/remedies/posted_arguments.h"

#include <cctype>
#include <vector>

#include "base/find_text.h"

namespace headroom::doctor {
namespace {

// In lower case, without spaces, with one kind of quotation marks.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ') out += c == '\'' ? '"' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// 16 bits of either kind are in force where one of them is.
bool passed(std::string_view argument, const std::string& post) {
  constexpr std::string_view kSixteen[] = {"dtype=torch.float16", "dtype=torch.bfloat16", "dtype=\"float16\"",
                                           "dtype=\"bfloat16\"", "dtype=torch.half"};
  const std::string wanted = plain(argument);
  if (wanted.find('=') == std::string::npos) return false;
  if (find_text(post, wanted) != std::string_view::npos) return true;
  if (wanted == "low_cpu_mem_usage=true") return find_text(post, "device_map=") != std::string_view::npos;  // implied
  const bool sixteen = wanted.find("dtype=torch.float16") != std::string::npos ||
                       wanted.find("dtype=torch.bfloat16") != std::string::npos;
  for (const std::string_view each : kSixteen)
    if (sixteen && find_text(post, each) != std::string_view::npos) return true;
  return false;
}

// "from_pretrained(..., a=1, b=2)": the call without what the post passes; empty where nothing is left of it.
std::string call_without(std::string_view part, const std::string& post) {
  constexpr std::string_view kOpens = "(..., ";
  const size_t open = part.find(kOpens);
  const size_t close = open == std::string_view::npos ? open : part.find(')', open);
  if (close == std::string_view::npos || part.substr(open + 1, close - open - 1).find('(') != std::string_view::npos)
    return std::string(part);
  std::string_view arguments = part.substr(open + kOpens.size(), close - open - kOpens.size());
  std::string left;
  bool all = true;
  while (!arguments.empty()) {
    const std::string_view argument = arguments.substr(0, arguments.find(", "));
    arguments.remove_prefix(std::min(arguments.size(), argument.size() + 2));
    if (passed(argument, post)) {
      all = false;
      continue;
    }
    left += (left.empty() ? "" : ", ") + std::string(argument);
  }
  if (all) return std::string(part);
  if (left.empty()) return {};
  return std::string(part.substr(0, open + kOpens.size())) + left + std::string(part.substr(close));
}

}  // namespace

std::string without_posted_arguments(const std::string& set, std::string_view post) {
  const std::string plain_post = plain(post);
  std::string out;
  for (std::string_view rest = set; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find("; "));
    rest.remove_prefix(std::min(rest.size(), part.size() + 2));
    const std::string left = call_without(part, plain_post);
    if (!left.empty()) out += (out.empty() ? "" : "; ") + left;
  }
  return out;
}

}  // namespace headroom::doctor
