(** The hypotheses can be met: an interpretation, two neighbouring databases, and a plan that Coq runs. *)
Require Import List Permutation ZArith Lia.
From Dpsql Require Import Near Ops Plan Sound Tiny.
Import ListNotations.

(** visits(person, cost); keep one row of each cost; persons' totals. *)
Open Scope Z_scope.
Definition before_ (t : nat) : list row := match t with 0%nat => [[Some 1; Some 5]; [Some 2; Some 5]; [None; Some 7]] | _ => [] end.
Definition unit_ (t : nat) : list row := match t with 0%nat => [[Some 3; Some 5]; [Some 3; Some 9]] | _ => [] end.
Definition after_ (t : nat) : list row := before_ t ++ unit_ t.
Definition ids_of (t : nat) : protection := match t with 0%nat => IdUnit 0 | _ => Unchanged end.
Example are_neighbours : neighbours ids_of before_ unit_ after_ 3.
Proof.
  intros [|t]; simpl; auto. split; [reflexivity |]. split; intros r H; simpl in H; repeat destruct H as [<- | H]; try tauto; vm_compute; congruence.
Qed.
Definition totals := Group [Col 0] 0 (Scan 0).
Example derived : derive (fun _ => 2%nat) (fun _ => 2%nat) ids_of (fun _ => []) totals = Some (Ids [0%nat]).
Proof. reflexivity. Qed.
Example result : eval (fun _ => 2%nat) (fun _ => 2%nat) tiny after_ totals = [[Some 1; Some 1; Some 5]; [Some 2; Some 1; Some 5]; [None; Some 1; Some 7]; [Some 3; Some 2; Some 14]].
Proof. reflexivity. Qed.

(** [tight]: GROUP BY 2k. One row more changes a group's row into another. *)
Definition one (t : nat) : list row := [[Some 1; Some 5]].
Definition two (t : nat) : list row := [[Some 1; Some 5]; [Some 1; Some 6]].
Example group_is_tight : ~ near 1 (eval (fun _ => 2%nat) (fun _ => 2%nat) tiny one totals) (eval (fun _ => 2%nat) (fun _ => 2%nat) tiny two totals).
Proof.
  vm_compute eval. intros (c & r & a & P & Q & L).
  assert (Lp := Permutation_length P). assert (Lq := Permutation_length Q). rewrite app_length in *. simpl in *.
  destruct r as [|r0 r], a as [|a0 a]; simpl in *; try lia.
  rewrite app_nil_r in *. assert (E : Permutation [[Some 1; Some 1; Some 5]] [[Some 1; Some 2; Some 11]]) by (etransitivity; [exact P | symmetry; exact Q]).
  apply Permutation_length_1 in E. discriminate.
Qed.
