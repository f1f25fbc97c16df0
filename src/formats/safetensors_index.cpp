#include "formats/safetensors_index.h"

#include <set>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/json.h"
#include "formats/json_characters.h"
#include "formats/safetensors.h"

namespace headroom {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxFiles = 4096;

[[noreturn]] void refuse(const std::filesystem::path& index, const std::string& problem) {
  throw Error(ErrorKind::format, fmt::format("{}: {}", index.string(), problem), "download the checkpoint again");
}

void check_name(const std::filesystem::path& index, const std::string& tensor, const std::string& file) {
  if (file.empty() || file == "." || file == ".." ||
      file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
    refuse(index, fmt::format("weight_map of '{}' is '{}', not the name of a file next to it", tensor, file));
}

// Depth in the document: 1 = the index, 2 = weight_map or another member of the index.
class IndexEvents : public nlohmann::json_sax<Json> {
 public:
  IndexEvents(const std::filesystem::path& index, const IndexEntry& entry) : index_(index), entry_(entry) {}
  int64_t entries() const { return entries_; }
  bool has_map() const { return has_map_; }

  bool start_object(std::size_t) override {
    if (depth_ == 0) return enter();
    if (depth_ == 1 && key_ == "weight_map")
      in_map_ = has_map_ = true;
    else
      other_value();
    return enter();
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return other_value() && enter(); }
  bool end_array() override { return leave(); }
  bool key(string_t& text) override {
    if (depth_ <= 2) key_ = text;
    return true;
  }
  bool string(string_t& text) override {
    if (!in_map_ || depth_ != 2) return other_value();
    check_name(index_, key_, text);
    ++entries_;
    entry_(key_, text);
    return true;
  }
  bool number_unsigned(number_unsigned_t) override { return other_value(); }
  bool number_integer(number_integer_t) override { return other_value(); }
  bool number_float(number_float_t, const string_t&) override { return other_value(); }
  bool null() override { return other_value(); }
  bool boolean(bool) override { return other_value(); }
  bool binary(binary_t&) override { return other_value(); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    refuse(index_, fmt::format("malformed JSON at byte {}", position));
  }

 private:
  // A value other than an entry of weight_map.
  bool other_value() {
    if (depth_ == 0 || (depth_ == 1 && key_ == "weight_map")) refuse(index_, "has no object weight_map");
    if (in_map_) refuse(index_, fmt::format("weight_map of '{}' is not a string", key_));
    return true;
  }
  bool enter() {
    if (++depth_ > kMaxDepth) refuse(index_, fmt::format("nested deeper than {} levels", kMaxDepth));
    return true;
  }
  bool leave() {
    if (--depth_ == 1) in_map_ = false;
    return true;
  }

  const std::filesystem::path& index_;
  const IndexEntry& entry_;
  int depth_ = 0;
  int64_t entries_ = 0;
  bool in_map_ = false, has_map_ = false;
  std::string key_;
};

}  // namespace

void read_safetensors_index(const std::filesystem::path& index, const IndexEntry& entry) {
  const File file = File::open(index);
  if (file.size() > kMaxHeaderBytes)
    refuse(index,
           fmt::format("has {}, an index has at most {}", format_bytes(file.size()), format_bytes(kMaxHeaderBytes)));
  JsonCharacters text(file, 0, file.size());
  IndexEvents events(index, entry);
  if (text.front() == '{') Json::sax_parse(text.begin(), text.end(), &events);
  if (text.zero_at()) refuse(index, fmt::format("malformed JSON: a NUL byte at byte {}", *text.zero_at()));
  if (!events.has_map()) refuse(index, "has no object weight_map");
  if (events.entries() == 0) refuse(index, "weight_map is empty");
}

std::vector<std::string> files_of_index(const std::filesystem::path& index) {
  std::set<std::string> names;
  read_safetensors_index(index, [&](const std::string&, const std::string& file) {
    if (names.insert(file).second && names.size() > kMaxFiles)
      refuse(index, fmt::format("weight_map names more than {} files", kMaxFiles));
  });
  return {names.begin(), names.end()};
}

}  // namespace headroom
