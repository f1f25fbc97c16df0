// What a person has already tried, according to the log.
#pragma once

#include <string_view>

#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {

// `log` and the sentences are in lower case.

// Whether a sentence of the log names what the technique does, and it or the next one says that it did not help.
bool tried_in_vain(std::string_view log, std::string_view technique);

// Whether the sentence says that somebody did something already ("I tried", "even with", "已经"), and neither asks
// about it nor says that it went well. A post is written because memory still runs out.
bool says_attempted(std::string_view sentence);
// Whether the sentence says that something did not help ("still", "no luck", "還是").
bool says_in_vain(std::string_view sentence);
// Whether the sentence says that what the words name is not to blame ("it is not the batch size",
// "不是batch_size的问题").
bool says_not_the_matter(std::string_view sentence, std::string_view words);
// Whether the sentence begins by saying that what was named before did not help ("Still OOM", "依旧OOM").
bool begins_in_vain(std::string_view sentence);

// Calls each(sentence, whether the next sentence begins_in_vain()) until it returns true; returns whether it did.
template <typename Each>
bool each_with_answer(std::string_view log, Each each) {
  std::string_view last;
  bool found = false;
  each_sentence(log, [&](std::string_view sentence) {
    if (sentence.find_first_not_of(" \t\r") == std::string_view::npos) return false;
    found = !last.empty() && each(last, begins_in_vain(sentence));
    last = sentence;
    return found;
  });
  return found || (!last.empty() && each(last, false));
}

}  // namespace headroom::doctor
