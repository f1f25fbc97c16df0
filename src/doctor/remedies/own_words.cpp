#include "doctor/remedies/own_words.h"

#include <algorithm>

#include "base/lines.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r*#_";
  const size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

bool quotes(std::string_view line) { return trimmed(line).starts_with(">"); }

// The program's output, a command or code, whoever wrote the text around it.
bool of_a_program(std::string_view line) {
  constexpr std::string_view kOutput =
      "traceback|file \"|error:|exception|warning|[info]|- info -|it/s]|s/it]|tried to allocate|python |torchrun|"
      "accelerate launch|deepspeed --|docker run|pip install|cuda_visible_devices|import |def |print(";
  return !any_word(line, kOutput).empty();
}

// The name before these words at the start or the end of a line of its own: "ann wrote:", "bob commented on ...",
// "on mon, 3 may 2021, ann <...> wrote:", "bob · comment · 2021-05-03".
std::string_view speaker(std::string_view line) {
  constexpr size_t kLongest = 120;
  line = trimmed(line);
  if (line.size() > kLongest) return {};
  for (const std::string_view words : {" commented", " replied", " answered", " · comment", " · description",
                                       " opened this issue", " added a comment", "回复:", "回复：", " さんの回答"})
    if (const size_t at = line.find(words); at != std::string_view::npos && at > 0) {
      const std::string_view name = line.substr(0, at);
      if (name.find_first_of(" =:\"") == std::string_view::npos) return name;  // a handle, not a sentence
    }
  return line.ends_with(" wrote:") ? line : std::string_view();
}

// Lines of consecutive quotes: a reply unless one of them is a program's.
std::string without_quoted_replies(std::string_view text) {
  std::string kept, block;
  bool program = false;
  const auto close = [&] {
    if (program) kept += block;
    block.clear();
    program = false;
  };
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!quotes(line)) close();
    std::string& into = quotes(line) ? block : kept;
    program = program || (quotes(line) && of_a_program(line));
    into.append(line).push_back('\n');
  }
  close();
  return kept;
}

// The post is the first speaker's, and what stands before any.
std::string without_other_speakers(std::string_view text) {
  std::string kept;
  std::string_view author;
  bool own = true;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::string_view name = speaker(line);
    if (!name.empty()) {
      if (author.empty() && trimmed(kept).empty()) author = name;
      own = name == author;
      continue;
    }
    if (own) kept.append(line).push_back('\n');
  }
  return kept;
}

constexpr std::string_view kDone =
    "i tried|i've tried|i have tried|i also tried|i already|i try|i've|i have|i set|i use|i used|i am|i'm|i reduced|"
    "i decreased|i lowered|i changed|i put|i run|i ran|we tried|we set|we use|we have|my batch|even with|even if|even "
    "when|even at|still|already|已经|试过|试了|尝试了|我设|我把|我改|我将|设成了|改成了|调成|就算|即使|哪怕|还是|"
    "しました|しても|でも|ましたが";
constexpr std::string_view kProposed =
    "you can|you could|you should|you may|you might|you need|you have to|try to|try setting|try with|try using|try "
    "reducing|try a |try batch|maybe try|just try|please set|please try|please use|please reduce|please lower|please "
    "decrease|please change|consider|i suggest|i'd suggest|i recommend|i would|would recommend|what "
    "if|建议把|建议将|建议设|建议改|建议调|建议用|试试|试一下|可以试|可以把|可以将|可以设|"
    "请把|请将|请尝试|需要把|してみて|試してみ|してください|した方が|すれば";
constexpr std::string_view kAsks =
    "have you tried|did you try|did you set|have you set|are you using|should i|can i set|can i use|could i|shall i";
constexpr std::string_view kNoProposal = "you can see|as you see|you may see|you can find";

}  // namespace

std::string without_replies(const std::string& log) {
  constexpr size_t kPost = size_t{64} << 10;  // people's words come first
  const std::string_view whole = log;
  return without_other_speakers(without_quoted_replies(whole.substr(0, kPost))) +
         std::string(whole.substr(std::min(kPost, whole.size())));
}

bool proposes(std::string_view sentence) {
  if (!any_word(sentence, kAsks).empty()) return true;
  if (!any_word(sentence, kDone).empty()) return false;
  if (!any_word(without_words(sentence, kNoProposal), kProposed).empty()) return true;
  const std::string_view begun = trimmed(sentence);
  constexpr std::string_view kOrders[] = {"set ", "try ", "reduce ", "lower ", "decrease "};
  return std::any_of(std::begin(kOrders), std::end(kOrders),
                     [&](std::string_view order) { return begun.starts_with(order); });
}

}  // namespace headroom::doctor
