(** What is compared with the planner's claims, and what it means that one is accepted. *)
Require Import List Permutation Arith Bool Lia.
From Dpsql Require Import Near Plan Sound.
Import ListNotations.

(** A claim of the planner: tables with their columns, what of them changes and what is promised; the columns of each
    aggregation; a plan; a fact. *)
Definition claim : Type := list (nat * protection * list (list nat * nat)) * list nat * plan * fact.
Definition table_of (ts : list (nat * protection * list (list nat * nat))) (t : nat) := nth t ts (0, Unchanged, []).
Definition tables (x : claim) := fst (fst (fst x)).
Definition columns_of (x : claim) t := fst (fst (table_of (tables x) t)).
Definition policy_of (x : claim) t := snd (fst (table_of (tables x) t)).
Definition promises_of (x : claim) t := snd (table_of (tables x) t).
Definition made_by (x : claim) a := nth a (snd (fst (fst x))) 0.
Definition found (x : claim) := derive (columns_of x) (made_by x) (policy_of x) (promises_of x) (snd (fst x)).

(** The planner may claim as much as is derived, or more; never less. *)
Definition covers (claimed : fact) (derived : option fact) : bool := match claimed, derived with
  | Same, Some Same => true
  | Rows _, Some Same => true
  | Rows k, Some (Rows j) => j <=? k
  | Ids cs, Some (Ids ds) => negb (length cs =? 0) && forallb (fun c => mem c ds) cs
  | Ids _, Some Same => true
  | _, _ => false end.
Definition accepted (x : claim) : bool := covers (snd x) (found x).

(** What a claim says. Of ids it may also be that nothing changes at all. *)
Definition says (x : claim) I D U D' u : Prop := let p := snd (fst x) in match snd x with
  | Ids cs => holds (columns_of x) (made_by x) I D U D' u p (Ids cs) \/ holds (columns_of x) (made_by x) I D U D' u p Same
  | f => holds (columns_of x) (made_by x) I D U D' u p f \/ holds (columns_of x) (made_by x) I D U D' u p Same end.
Theorem accepted_sound x I D U D' u : neighbours (policy_of x) D U D' u ->
  promised (promises_of x) D -> promised (promises_of x) D' -> accepted x = true -> says x I D U D' u.
Proof.
  intros N P P' A. unfold accepted, found in A. unfold says. cbv zeta.
  destruct (derive (columns_of x) (made_by x) (policy_of x) (promises_of x) (snd (fst x))) as [f|] eqn:E.
  2:{ destruct (snd x); discriminate. }
  pose proof (derive_sound _ _ _ _ I D U D' u (snd (fst x)) N P P' f E) as H.
  destruct (snd x) as [|k|cs], f as [|j|ds]; simpl in A; try discriminate; auto.
  - left. simpl in *. apply Nat.leb_le in A. now apply near_weaken with j.
  - left. apply andb_true_iff in A. destruct A as [_ A]. rewrite forallb_forall in A. simpl in *. destruct H as (Hp & H1 & H2).
    repeat split; auto; intros c Hc; [apply H1 | apply H2]; specialize (A c Hc); unfold mem in A; apply existsb_exists in A;
      destruct A as (d & Hd & Q); apply Nat.eqb_eq in Q; now subst.
Qed.

(** The numbers of the claims that are refused. *)
Fixpoint refused (n : nat) (xs : list claim) : list nat := match xs with
  | [] => []
  | x :: r => if accepted x then refused (S n) r else n :: refused (S n) r end.
