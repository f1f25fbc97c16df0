#include "doctor/answer/post_lines.h"

#include <algorithm>

#include "doctor/config/setting.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

bool is_fence(std::string_view line) {
  const std::string_view text = trimmed(line);
  return (text.starts_with("```") && text.find("```", 3) == std::string_view::npos) || text.starts_with("~~~");
}

bool opens_a_diff(std::string_view line) {
  const std::string tag = lower(trimmed(line).substr(3));
  return tag.starts_with("diff") || tag.starts_with("patch");
}

// "user commented 2 days ago", "On Monday, A B wrote:", "## Answer". A forum puts the first one above the post itself.
bool begins_an_answer(std::string_view line, size_t number) {
  constexpr size_t kHeader = 3, kLongest = 80;
  const std::string text = lower(trimmed(line));
  if (text.size() > kLongest || number < kHeader) return false;
  for (const std::string_view did : {"commented ", "replied ", "answered "})
    if (const size_t at = text.find(did); at != std::string::npos) {
      const std::string_view when = std::string_view(text).substr(at + did.size());
      if (!any_word(when.substr(0, 10), "on |last |yesterday|an |a |1|2|3|4|5|6|7|8|9").empty() &&
          (when.find("ago") != std::string_view::npos || when.starts_with("on ")))
        return true;
    }
  if (text.ends_with("wrote:") || text.ends_with("replied:") || text.ends_with("answered:")) return true;
  const std::string_view heading =
      trimmed(std::string_view(text).substr(std::min(text.find_first_not_of("#*"), text.size())));
  return heading.starts_with("answer") || heading.starts_with("solution") || heading.starts_with("回答") ||
         heading.starts_with("回复");
}

bool in_diff(std::string_view line) { return line.starts_with("@@ -") || line.starts_with("diff --git"); }

// Marks the lines of tracebacks: their code is of libraries as well.
void mark_tracebacks(std::vector<PostLine>& lines) {
  bool inside = false, framed = false;
  for (PostLine& line : lines) {
    const std::string_view text = trimmed(line.text);
    if (text.find("Traceback (most recent call last)") != std::string_view::npos) {
      inside = true;
      framed = false;
    }
    const size_t file = text.find("File \"");
    const bool frame = file != std::string_view::npos && text.find(", line ", file) != std::string_view::npos;
    inside = inside || frame;
    if (!inside) continue;
    // The exception's own line ends it.
    const bool ends = framed && !frame && !text.empty() && indentation(line.text) == 0;
    framed = framed || frame;
    line.foreign = true;
    if (ends || line.fence) inside = false;
  }
}

// Where the comment that heads a quoted file begins, if it ends before `begin`; else `begin`. A line or two are the
// person's own remark.
size_t before_header(const std::vector<PostLine>& lines, size_t begin) {
  constexpr int kLeast = 3;
  size_t at = begin;
  int comments = 0;
  for (; at > 0 && lines[at - 1].block == lines[begin].block; --at) {
    const std::string_view text = trimmed(lines[at - 1].text);
    if (!text.empty() && !text.starts_with('#')) break;
    comments += text.empty() ? 0 : 1;
  }
  return comments >= kLeast ? at : begin;
}

// The nearest lines of prose before `begin`: at most two.
std::string prose_before(const std::vector<PostLine>& lines, size_t begin) {
  constexpr int kMost = 2;
  std::string prose;
  begin = before_header(lines, begin);
  for (int found = 0; begin-- > 0 && found < kMost;) {
    const PostLine& line = lines[begin];
    if (line.fence || trimmed(line.text).empty()) {
      if (line.fence && found > 0) break;
      continue;
    }
    if (line.foreign) break;
    prose = lower(line.text) + "\n" + prose;
    ++found;
  }
  return prose;
}

std::string prose_behind(const std::vector<PostLine>& lines, size_t end) {
  for (; end < lines.size(); ++end)
    if (!lines[end].fence && !trimmed(lines[end].text).empty()) return lower(lines[end].text);
  return {};
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(begin);
  const size_t last = text.find_last_not_of(" \t\r");
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

size_t indentation(std::string_view line) { return std::min(line.find_first_not_of(" \t"), line.size()); }

bool is_elision(std::string_view line) {
  std::string_view text = trimmed(line);
  text.remove_prefix(std::min(text.find_first_not_of("#/[(<- "), text.size()));
  return text.starts_with("...") || text.starts_with("…") || text.starts_with("snip>") || text.starts_with("省略");
}

bool introduced_as_another(const std::vector<PostLine>& lines, size_t begin, size_t end) {
  constexpr std::string_view kAnother =
      "instead|works$|worked$|working config|working set|working version|that work$|fixed$|solved|solution|should "
      "i|should we|could i|can i|would it|what "
      "if|suggest|recommend|advis|try this|try the following|try to use|try using|you can|you could|you should|please "
      "use|please try|previous|before:|before this|after:|changed to|changed it to|changing it to|switched to|also "
      "tried|another|second run|other run|comparison|compared|different|someone|example of|e.g.|改成|改为|换成|建议|"
      "可以用|可以试|参考|之前|例如";
  constexpr std::string_view kWell =
      "this works|it works|works fine|works well|that works|this worked|it worked|runs fine|this runs|no problem|"
      "solved|fixed|可以了|解决了|正常";
  return !any_word(prose_before(lines, begin), kAnother).empty() || !any_word(prose_behind(lines, end), kWell).empty();
}

std::vector<PostLine> lines_of_post(std::string_view post) {
  std::vector<PostLine> lines;
  int block = 0;
  bool open = false, diff = false, others = false;
  while (!post.empty()) {
    const size_t end = std::min(post.find('\n'), post.size());
    PostLine line{post.substr(0, end), block, false, false};
    post.remove_prefix(std::min(end + 1, post.size()));
    line.fence = is_fence(line.text);
    if (line.fence) {
      open = !open;
      diff = open && opens_a_diff(line.text);
      line.block = ++block;
      ++block;
    }
    others = others || (!open && begins_an_answer(line.text, lines.size())) || in_diff(line.text);
    line.foreign = others || diff || trimmed(line.text).starts_with('>');
    lines.push_back(line);
  }
  mark_tracebacks(lines);
  return lines;
}

}  // namespace headroom::doctor
