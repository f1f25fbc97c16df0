#include "formats/run_file.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/bytes.h"
#include "base/error.h"
#include "formats/file.h"

namespace headroom {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 20;
constexpr std::string_view kFlat =
    "a run file is flat: one `option: value` or `option: [values]` per line, as on the command line";

std::string kebab(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

// Receives YAML events: depth 0 = outside, 1 = the map, 2 = a list of values.
class RunFileEvents : public YAML::EventHandler {
 public:
  explicit RunFileEvents(const std::string& source) : source_(source) {}
  std::vector<RunFileEntry> take() { return std::move(entries_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (depth_ == 0) return;  // an empty document
    if (depth_ == 1 && expect_key_) refuse(mark, "an empty key", std::string(kFlat));
    refuse_line(entries_.back().line, fmt::format("'{}' has no value", entries_.back().key),
                "give it a value or remove the line");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "an alias (*name)", std::string(kFlat));
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (depth_ == 0)
      refuse(mark, fmt::format("'{}' where `option: value` was expected", value.substr(0, 60)), std::string(kFlat));
    if (depth_ == 1 && expect_key_) return begin_entry(mark, value);
    entries_.back().values.push_back(value);
    entries_.back().value_lines.push_back(mark.line + 1);
    if (depth_ == 1) expect_key_ = true;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    if (depth_ == 0 || (depth_ == 1 && expect_key_))
      refuse(mark, "a list where `option: value` was expected", std::string(kFlat));
    if (depth_ == 2)
      refuse(mark, fmt::format("'{}' has a list inside a list", entries_.back().key), std::string(kFlat));
    entries_.back().is_list = true;
    depth_ = 2;
  }
  void OnSequenceEnd() override {
    depth_ = 1;
    expect_key_ = true;
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    if (depth_ == 1 && expect_key_) refuse(mark, "a map as a key", std::string(kFlat));
    if (depth_ > 0) refuse(mark, fmt::format("'{}' has a nested map", entries_.back().key), std::string(kFlat));
    depth_ = 1;
    expect_key_ = true;
  }
  void OnMapEnd() override { depth_ = 0; }

 private:
  [[noreturn]] void refuse_line(int line, const std::string& problem, const std::string& remedy) const {
    throw Error(ErrorKind::format, fmt::format("{}:{}: {}", source_, line, problem), remedy);
  }
  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& problem, const std::string& remedy) const {
    refuse_line(mark.line + 1, problem, remedy);
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) refuse(mark, "an anchor (&name)", std::string(kFlat));
  }
  void begin_entry(const YAML::Mark& mark, const std::string& written) {
    const std::string key = kebab(written);
    if (key.empty()) refuse(mark, "an empty key", std::string(kFlat));
    const auto [first, is_new] = lines_.emplace(key, mark.line + 1);
    if (!is_new)
      refuse(mark, fmt::format("'{}' is given twice (first in line {})", written.substr(0, 60), first->second),
             "keep one of them; several values go in a list");
    entries_.push_back({key, {}, {}, false, mark.line + 1});
    expect_key_ = false;
  }

  const std::string& source_;
  std::vector<RunFileEntry> entries_;
  std::map<std::string, int> lines_;
  int depth_ = 0;
  bool expect_key_ = true;
};

}  // namespace

std::vector<RunFileEntry> parse_run_file(std::string_view text, const std::string& source) {
  if (static_cast<int64_t>(text.size()) > kMaxBytes)
    throw Error(ErrorKind::format,
                fmt::format("{} has {}, a run file has at most {}", source,
                            format_bytes(static_cast<int64_t>(text.size())), format_bytes(kMaxBytes)),
                "check that the path names a run file");
  RunFileEvents events(source);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(events);
    if (parser && parser.HandleNextDocument(events))
      throw Error(ErrorKind::format, fmt::format("{}: holds several documents (---)", source), "give one file per run");
  } catch (const YAML::Exception& e) {
    throw Error(ErrorKind::format, fmt::format("{}:{}: malformed YAML: {}", source, e.mark.line + 1, e.msg),
                std::string(kFlat));
  }
  return events.take();
}

std::vector<RunFileEntry> read_run_file(const std::filesystem::path& path) {
  const File file = File::open(path);
  const int64_t size = std::min(file.size(), kMaxBytes + 1);
  std::string text(static_cast<size_t>(size), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return parse_run_file(text, path.string());
}

}  // namespace headroom
