#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "formats/document.h"
#include "formats/document_limits.h"

namespace headroom {
namespace {

using Kind = DocumentNode::Kind;

// Byte after the scalar that starts at `begin`, 0 if it does not end on its own line. `flow`: inside [] or {}.
int64_t scalar_end(std::string_view text, int64_t begin, bool flow) {
  const size_t start = static_cast<size_t>(begin);
  if (start >= text.size()) return 0;
  const char quote = text[start];
  if (quote == '|' || quote == '>' || quote == '&' || quote == '*' || quote == '!') return 0;
  if (quote == '"' || quote == '\'') {
    for (size_t i = start + 1; i < text.size() && text[i] != '\n'; ++i) {
      if (quote == '"' && text[i] == '\\') {
        ++i;
      } else if (text[i] == quote) {
        if (quote == '\'' && i + 1 < text.size() && text[i + 1] == '\'') {
          ++i;
        } else {
          return static_cast<int64_t>(i) + 1;
        }
      }
    }
    return 0;
  }
  size_t end = start;
  for (size_t i = start; i < text.size() && text[i] != '\n'; ++i) {
    if (flow && std::string_view(",[]{}").find(text[i]) != std::string_view::npos) break;
    if (text[i] == '#' && i > start && (text[i - 1] == ' ' || text[i - 1] == '\t')) break;
    if (text[i] == ':' &&
        (i + 1 == text.size() || std::string_view(" \r\n").find(text[i + 1]) != std::string_view::npos))
      break;
    if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') end = i + 1;
  }
  return static_cast<int64_t>(end);
}

bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

// Byte after the word for null at `begin`; 0 if the value is missing and something else is there, such as the next key.
int64_t written_null_end(std::string_view text, int64_t begin, bool flow) {
  const int64_t end = scalar_end(text, begin, flow);
  if (end <= begin || (end < static_cast<int64_t>(text.size()) && text[static_cast<size_t>(end)] == ':')) return 0;
  return is_null_word(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin))) ? end : 0;
}

// Builds the tree from yaml-cpp's events.
class TreeEvents : public YAML::EventHandler {
 public:
  TreeEvents(std::string_view text, const std::string& source)
      : text_(text), source_(source), offset_(text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0) {}
  DocumentNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    DocumentNode node = leaf(mark);
    if (!expects_key()) node.end = written_null_end(text_, node.begin, !open_.empty() && open_.back().flow);
    add(mark, std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(mark, "an alias inside its own anchor");
    book_copy(mark, found->second);
    DocumentNode node = found->second;
    forget_places(node, mark.line + 1);
    add(mark, std::move(node), 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    DocumentNode node = leaf(mark);
    node.quoted = tag == "!";
    if (node.quoted || !is_null_word(value)) node.kind = Kind::scalar;
    if (node.kind == Kind::scalar) node.text = value;
    if (!expects_key()) {
      const bool flow = !open_.empty() && open_.back().flow;
      node.end = scalar_end(text_, node.begin, flow);
      if (node.end == 0 && !node.quoted) node.begin = 0;
    } else {
      node.text = value;
    }
    add(mark, std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, Kind::sequence, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, Kind::mapping, anchor, style);
  }
  void OnMapEnd() override {
    merge(open_.back().node);
    close();
  }

 private:
  struct Open {
    DocumentNode node;
    YAML::anchor_t anchor = 0;
    bool flow = false;
    bool key_next = false;
    YAML::Mark mark;
  };

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& problem) const {
    throw Error(ErrorKind::format, fmt::format("{}:{}: {}", source_, mark.line + 1, problem),
                "correct the file at this line");
  }
  bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == Kind::mapping && open_.back().key_next;
  }
  DocumentNode leaf(const YAML::Mark& mark) const {
    DocumentNode node;
    node.line = mark.line + 1;
    node.begin = std::max(mark.pos, 0) + offset_;
    return node;
  }
  // Counts a copy of a value, for an anchor or an alias, in the document's limits before it is made.
  void book_copy(const YAML::Mark& mark, const DocumentNode& node) {
    count(node);
    if (values_ > kMaxDocumentValues)
      refuse(mark, fmt::format("more than {} values with those that anchors and aliases repeat", kMaxDocumentValues));
    if (copied_bytes_ > kMaxDocumentBytes)
      refuse(mark, fmt::format("anchors and aliases repeat more than {} of text", format_bytes(kMaxDocumentBytes)));
  }
  void count(const DocumentNode& node) {
    ++values_;
    copied_bytes_ += static_cast<int64_t>(node.text.size());
    for (const DocumentNode& item : node.items) count(item);
    for (const DocumentEntry& entry : node.entries) {
      copied_bytes_ += static_cast<int64_t>(entry.key.size());
      count(entry.value);
    }
  }
  // Text repeated by an alias is elsewhere in the file: it must not be edited there.
  static void forget_places(DocumentNode& node, int64_t line) {
    node.begin = node.end = 0;
    node.line = line;
    for (DocumentNode& item : node.items) forget_places(item, line);
    for (DocumentEntry& entry : node.entries) forget_places(entry.value, line);
  }

  void open(const YAML::Mark& mark, Kind kind, YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    if (expects_key()) refuse(mark, "a map or list as a key");
    if (open_.size() >= static_cast<size_t>(kMaxDocumentDepth))
      refuse(mark, fmt::format("nested deeper than {} levels", kMaxDocumentDepth));
    Open frame;
    frame.node = leaf(mark);
    frame.node.kind = kind;
    frame.anchor = anchor;
    frame.flow = style == YAML::EmitterStyle::Flow;
    frame.key_next = true;
    frame.mark = mark;
    open_.push_back(std::move(frame));
  }
  void close() {
    Open frame = std::move(open_.back());
    open_.pop_back();
    if (frame.flow) frame.node.end = flow_end(frame.node);
    add(frame.mark, std::move(frame.node), frame.anchor);
  }
  // Byte after a flow collection without nested strings that contain brackets; 0 otherwise.
  int64_t flow_end(const DocumentNode& node) const {
    int depth = 0;
    for (size_t i = static_cast<size_t>(node.begin); i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && --depth == 0) return static_cast<int64_t>(i) + 1;
      if (c == '"' || c == '\'') {
        const int64_t end = scalar_end(text_, static_cast<int64_t>(i), true);
        if (end == 0) return 0;
        i = static_cast<size_t>(end) - 1;
      }
    }
    return 0;
  }

  void add(const YAML::Mark& mark, DocumentNode node, YAML::anchor_t anchor) {
    if (++values_ > kMaxDocumentValues) refuse(mark, fmt::format("more than {} values", kMaxDocumentValues));
    if (anchor != 0) {
      book_copy(mark, node);
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key_next) {
      if (node.kind == Kind::sequence || node.kind == Kind::mapping) refuse(mark, "a map or list as a key");
      parent.node.entries.push_back({node.text, node.line, node.begin, {}});
      parent.key_next = false;
    } else {
      parent.node.entries.back().value = std::move(node);
      parent.key_next = true;
    }
  }

  // Adds the entries of `<<: *name` for keys that the map does not have itself.
  void merge(DocumentNode& node) {
    std::vector<DocumentEntry> merged;
    std::set<std::string_view> own;
    if (std::any_of(node.entries.begin(), node.entries.end(), [](const auto& entry) { return entry.key == "<<"; }))
      for (const DocumentEntry& entry : node.entries) own.insert(entry.key);
    for (const DocumentEntry& entry : node.entries) {
      if (entry.key != "<<") continue;
      std::vector<const DocumentNode*> sources = {&entry.value};
      for (const DocumentNode& item : entry.value.items) sources.push_back(&item);
      for (const DocumentNode* source : sources)
        for (const DocumentEntry& brought : source->entries)
          if (own.count(brought.key) == 0) merged.push_back(brought);
    }
    if (merged.empty()) return;
    std::erase_if(node.entries, [](const DocumentEntry& entry) { return entry.key == "<<"; });
    for (DocumentEntry& entry : merged) node.entries.push_back(std::move(entry));
  }

  std::string_view text_;
  const std::string& source_;
  int64_t offset_ = 0;
  DocumentNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, DocumentNode> anchors_;
  int64_t values_ = 0;        // of the tree and of the anchors' copies
  int64_t copied_bytes_ = 0;  // of the copies' texts
};

}  // namespace

DocumentNode parse_yaml_document(std::string_view text, const std::string& source) {
  refuse_unreadable_document(text, source);
  TreeEvents events(text, source);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(events);
    DocumentNode root = events.take();
    TreeEvents second(text, source);
    if (parser && parser.HandleNextDocument(second) && second.take().kind != DocumentNode::Kind::null)
      throw Error(ErrorKind::format, fmt::format("{}: holds several documents (---)", source),
                  "give one document per file");
    return root;
  } catch (const YAML::Exception& e) {
    const auto ends = std::count(text.begin(), text.end(), '\n');  // errors at the end are reported for the last line
    const int64_t last = ends + (text.empty() || text.back() != '\n' ? 1 : 0);
    const int64_t line = std::min<int64_t>(e.mark.line + 1, std::max<int64_t>(last, 1));
    throw Error(ErrorKind::format, fmt::format("{}:{}: malformed YAML: {}", source, line, e.msg),
                "correct the file at this line");
  }
}

}  // namespace headroom
