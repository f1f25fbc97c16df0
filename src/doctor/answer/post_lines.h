// A post as lines, with what they belong to.
#pragma once

#include <string_view>
#include <vector>

namespace headroom::doctor {

struct PostLine {
  std::string_view text;  // without the line's end
  int block = 0;          // lines of one code block, or between two, have the same number
  bool fence = false;     // begins or ends a code block: "```yaml"
  bool foreign = false;   // of other people, of a diff, or of a traceback
};

std::vector<PostLine> lines_of_post(std::string_view post);

// Without the white space around it.
std::string_view trimmed(std::string_view text);
// Blanks before the first other character.
size_t indentation(std::string_view line);
// "...", "# ...", "[...]": the writer has left something out.
bool is_elision(std::string_view line);
// Whether the prose around the lines from `begin` to `end` says that they are not the failing job: a proposal, a
// comparison, what works.
bool introduced_as_another(const std::vector<PostLine>& lines, size_t begin, size_t end);

}  // namespace headroom::doctor
