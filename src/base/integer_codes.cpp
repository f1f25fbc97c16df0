#include "base/integer_codes.h"

#include <charconv>
#include <cstdlib>

namespace headroom {
namespace {

constexpr int64_t kUsualGroup = 32;  // int4's default
constexpr int64_t kLeastGroup = 8, kMostGroup = 65536;

bool allowed(int64_t group) { return group >= kLeastGroup && group <= kMostGroup && group % kLeastGroup == 0; }

}  // namespace

std::optional<IntegerCodes> integer_codes(std::string_view name) {
  const bool four = name.starts_with("int4");
  if (!four && !name.starts_with("int8")) return std::nullopt;
  IntegerCodes codes{four ? 4 : 8, four ? kUsualGroup : 0};
  name.remove_prefix(4);
  if (name.empty()) return codes;
  codes.group = 0;
  if (name == "-row") return codes;
  if (!name.starts_with("-g")) return std::nullopt;
  name.remove_prefix(2);
  const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), codes.group);
  if (status != std::errc() || end != name.data() + name.size() || !allowed(codes.group)) return std::nullopt;
  return codes;
}

std::string integer_codes_name(const IntegerCodes& codes) {
  const bool usual = codes.group == (codes.bits == 4 ? kUsualGroup : 0);
  const std::string name = codes.bits == 4 ? "int4" : "int8";
  if (usual) return name;
  return codes.group == 0 ? name + "-row" : name + "-g" + std::to_string(codes.group);
}

int64_t nearest_group(int64_t row, int64_t wanted) {
  int64_t best = 0;
  for (int64_t group = kLeastGroup; group <= kMostGroup && group <= row; group += kLeastGroup)
    if (row % group == 0 && (best == 0 || std::abs(group - wanted) < std::abs(best - wanted))) best = group;
  return best;
}

}  // namespace headroom
