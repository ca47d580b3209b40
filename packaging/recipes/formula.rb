class RecoverRun < Formula
  desc "@DESCRIPTION@"
  homepage "@HOME@"
  version "@VERSION@"
  license "@LICENSE@"

@HOMEBREW@

  def install
    bin.install "recover"
    man1.install Dir["man/*.1"]
    man5.install Dir["man/*.5"]
    man7.install Dir["man/*.7"]
    bash_completion.install "completions/recover.bash" => "recover"
    zsh_completion.install "completions/_recover"
    fish_completion.install "completions/recover.fish"
  end

  test do
    system "git", "init"
    system bin/"recover", "run", "--", "true"
    assert_match "complete", shell_output("#{bin}/recover status")
  end
end
