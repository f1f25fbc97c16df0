// Plans a training run, trains, generates text with the result, and explains an error that another program printed.
// Usage: train_and_write MODEL DATA OUTPUT_DIR
#include <headroom/headroom.h>

#include <cstdio>

namespace hr = headroom::api;

int main(int argc, char** argv) try {
  if (argc != 4) return std::fprintf(stderr, "usage: train_and_write MODEL DATA OUTPUT_DIR\n"), 2;
  const hr::Session session(argv[1], {{"memory", "256MiB"}, {"max-seq-length", "64"}});
  const hr::Options run = {{"data", argv[2]}, {"output-dir", argv[3]}, {"max-steps", "4"}, {"learning-rate", "1e-3"}};

  const hr::Plan plan = session.plan(run);
  std::printf("planned peak %lld of %lld bytes\n", static_cast<long long>(plan.peak_bytes()),
              static_cast<long long>(plan.budget_bytes()));
  hr::Callbacks callbacks;
  callbacks.step = [](const hr::Step& step) {
    std::printf("step %d loss %.4f\n", static_cast<int>(step.step), step.loss);
  };
  session.train(run, callbacks);

  // Four steps teach no spelling: the expression keeps the text to words.
  const hr::Session trained(argv[3], {{"memory", "256MiB"}, {"max-new-tokens", "16"}, {"regex", "[a-z ]{8,32}"}});
  for (const char* prompt : {"the ", "what the "}) {  // the second one finds the model loaded
    const hr::Generation written = trained.generate(prompt, {}, [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      return true;
    });
    std::printf("\n%zu bytes of text in %zu tokens\n", written.text.size(), written.ids.size());
  }

  hr::Question question;
  question.text =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB "
      "of which 1.12 GiB is free. Process 1234 has 22.56 GiB memory in use.";
  std::printf("%s", hr::explain(question).screen.c_str());
  return 0;
} catch (const hr::Refusal& refusal) {
  std::fprintf(stderr, "%s\n%s\n", refusal.what(), refusal.remedy().c_str());
  return 3;
} catch (const hr::Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.remedy().c_str());
  return 1;
}
