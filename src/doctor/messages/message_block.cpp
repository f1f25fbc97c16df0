#include "doctor/messages/message_block.h"

#include <algorithm>

#include "doctor/messages/clean_line.h"
#include "doctor/messages/recognisers.h"
#include "doctor/messages/word_scan.h"

namespace headroom::doctor {
namespace {

const std::vector<Recogniser>& recognisers() {
  static const std::vector<Recogniser> table = all_recognisers();
  return table;
}

const WordScan& triggers() {
  static const WordScan scan = [] {
    std::vector<WordScan::Word> words;
    for (const Recogniser& recogniser : recognisers()) words.push_back({recogniser.trigger, 0});
    return WordScan(std::move(words));
  }();
  return scan;
}

// For each word of triggers(): the rows, in order, whose trigger may start where that word does.
const std::vector<std::vector<const Recogniser*>>& rows_by_word() {
  static const std::vector<std::vector<const Recogniser*>> rows = [] {
    std::vector<std::vector<const Recogniser*>> lists;
    for (const Recogniser& found : recognisers()) {
      std::vector<const Recogniser*>& list = lists.emplace_back();
      for (const Recogniser& row : recognisers())
        if (row.trigger.starts_with(found.trigger) || found.trigger.starts_with(row.trigger)) list.push_back(&row);
    }
    return lists;
  }();
  return rows;
}

constexpr size_t kLongestText = 4096;

struct Group {
  int rank = -1;
  std::string text;
  std::vector<size_t> members;  // indices of lines
  std::vector<size_t> starts;   // their offsets in text

  // Index into `members` of the line at the offset.
  size_t member_at(size_t offset) const {
    const auto after = std::upper_bound(starts.begin(), starts.end(), offset);
    return static_cast<size_t>(after - starts.begin()) - 1;
  }
};

void read_group(Group& group, std::vector<BlockLine>& lines, size_t split,
                const std::function<void(Message)>& receive) {
  if (!group.text.empty()) group.text.pop_back();  // the text must not seem to go on after the last line
  const Squeezed squeezed(group.text);
  size_t from = 0;
  for (auto hit = triggers().next(squeezed.view(), 0); hit.position != std::string_view::npos;
       hit = triggers().next(squeezed.view(), from)) {
    from = hit.position + 1;
    const size_t member = group.member_at(squeezed.origin(hit.position));
    if (group.members[member] >= split) return;
    for (const Recogniser* row : rows_by_word()[hit.word]) {
      const Recogniser& recogniser = *row;
      if (squeezed.view().substr(hit.position, recogniser.trigger.size()) != recogniser.trigger) continue;
      Message message;
      Reading reading(group.text, squeezed, hit.position, recogniser.trigger.size(), message);
      if (!recogniser.parse(reading)) continue;
      const size_t first = group.member_at(squeezed.origin(reading.begin()));
      const size_t begin = squeezed.origin(reading.begin());
      const size_t text_start = std::max(group.starts[first], begin > 512 ? begin - 512 : 0);
      const size_t consumed = squeezed.origin(std::min(reading.end(), squeezed.size()) - 1) + 1;
      const size_t line_end = std::min(group.text.find('\n', consumed), group.text.size());
      const size_t text_end = std::min({line_end, consumed + 400, text_start + kLongestText});
      std::string text = printable(std::string_view(group.text).substr(text_start, text_end - text_start));
      std::replace(text.begin(), text.end(), '\n', ' ');
      message.text = std::move(text);
      message.line = lines[group.members[first]].line;
      if (group.rank >= 0) message.rank = group.rank;
      from = std::max(reading.end(), hit.position + 1);
      for (size_t m = 0; m < group.members.size() && group.starts[m] < consumed; ++m) {
        BlockLine& line = lines[group.members[m]];
        if (group.members[m] < split) continue;
        line.text.erase(0, std::min(line.text.size(), consumed - group.starts[m]));
      }
      receive(std::move(message));
      break;
    }
  }
}

}  // namespace

void read_messages(std::vector<BlockLine>& lines, size_t split, const std::function<void(Message)>& receive) {
  std::vector<Group> groups;
  Group* last = nullptr;
  for (size_t i = 0; i < lines.size(); ++i) {
    const int rank = lines[i].rank;
    if (last == nullptr || (rank != -1 && rank != last->rank)) {
      const auto found = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.rank == rank; });
      if (found == groups.end()) {
        groups.push_back({rank, {}, {}, {}});
        last = &groups.back();
      } else {
        last = &*found;
      }
    }
    last->members.push_back(i);
    last->starts.push_back(last->text.size());
    last->text += lines[i].text;
    last->text += '\n';
  }
  std::vector<std::pair<size_t, Message>> found;
  for (Group& group : groups) {
    read_group(group, lines, split,
               [&](Message message) { found.emplace_back(static_cast<size_t>(message.line), std::move(message)); });
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [line, message] : found) receive(std::move(message));
}

}  // namespace headroom::doctor
