{
  description = "@DESCRIPTION@";

  inputs.nixpkgs.url = "nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      version = "@VERSION@";
      archives = {
@NIX@
      };
      package = system: { target, sha256 }:
        let pkgs = nixpkgs.legacyPackages.${system};
        in pkgs.stdenvNoCC.mkDerivation {
          pname = "@NAME@";
          inherit version;
          src = pkgs.fetchurl {
            url = "@RELEASES@/recover-${version}-${target}.tar.gz";
            inherit sha256;
          };
          nativeBuildInputs = [ pkgs.installShellFiles ];
          dontConfigure = true;
          dontBuild = true;
          installPhase = ''
            install -Dm755 recover $out/bin/recover
            installManPage man/*
            installShellCompletion --cmd recover \
              --bash completions/recover.bash --zsh completions/_recover --fish completions/recover.fish
          '';
          meta = {
            description = "@DESCRIPTION@";
            homepage = "@HOME@";
            license = pkgs.lib.licenses.mit;
            mainProgram = "recover";
          };
        };
    in {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) archives;
    };
}
